import { type Window, WINDOWS } from '../series.ts'

interface WindowSwitchProps {
  readonly window: Window
  readonly onWindow: (window: Window) => void
}

/** Buttons for the window of time that charts show. */
export const WindowSwitch = ({ window, onWindow }: WindowSwitchProps) => (
  <div class="switcher" role="group" aria-label="Window">
    {WINDOWS.map((name) => (
      <button key={name} type="button" aria-pressed={name === window} onClick={() => onWindow(name)}>
        {name.replace('h', ' h').replace('d', ' d')}
      </button>
    ))}
  </div>
)
