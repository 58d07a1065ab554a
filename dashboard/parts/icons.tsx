/** Outlines on a grid of 24, drawn for this page. */
const PATHS = {
  anchor: 'M12 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Zm0 0v13m-5-9h10M4 14c.3 4 3.600 7 8 7s7.700-3 8-7',
  tunnel: 'M3 20V12a9 9 0 0 1 18 0v8M8 20v-7a4 4 0 0 1 8 0v7M3 20h18',
  database:
    'M4 6c0-1.700 3.600-3 8-3s8 1.300 8 3-3.600 3-8 3-8-1.300-8-3Zm0 0v12c0 1.700 3.600 3 8 3s8-1.300 8-3V6M4 12c0 1.700 3.600 3 8 3s8-1.300 8-3',
  list: 'M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01',
  plus: 'M12 5v14M5 12h14',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'm5 12.500 4.500 4.500L19 7',
  alert: 'M12 4 2.500 20h19L12 4Zm0 6v4m0 3h.01',
  out: 'M14 4h6v6m0-6-9 9M18 14v6H4V6h6',
  pause: 'M8 5v14M16 5v14',
  play: 'm7 4 13 8-13 8V4Z',
  close: 'm6 6 12 12M18 6 6 18',
  key: 'M14 10a4 4 0 1 0-3.500 4L12 15.500h2V18h2.500v2.500H20V18l-6.200-6.200c.1-.6.2-1.200.2-1.800ZM9 9h.01',
  search: 'M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14Zm5-2 5 5',
  door: 'M10 4H4v16h6m4-4 4-4-4-4m4 4H9',
  clock: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Zm0-14v5l3 2',
  trash: 'M4 7h16M9 7V4h6v3m-8 0 1 13h8l1-13',
  hook: 'M12 3v9a4 4 0 1 1-4-4M12 3a2 2 0 1 0 .01 0M16 12l-4 0',
} as const
export type IconName = keyof typeof PATHS

export const Icon = ({ name }: { name: IconName }) => (
  <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    <path d={PATHS[name]} />
  </svg>
)
