/** Number of rows above and below the view that are rendered in advance. */
const BEYOND = 8

export interface View {
  /** Scroll position in pixels. */
  readonly top: number
  /** Height of the view in pixels. */
  readonly height: number
  /** Height of a row in pixels. */
  readonly rowHeight: number
  /** Number of rows. */
  readonly count: number
}

/** Returns the rows to render: `first` inclusive, `last` exclusive. */
export function rowsInView({ top, height, rowHeight, count }: View): { readonly first: number; readonly last: number } {
  const begin = Math.floor(top / rowHeight) - BEYOND
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + BEYOND)
  return { first: Math.max(0, Math.min(begin, last)), last }
}
