/** Command that runs another one confined: `file` with `args`, then that command. */
export interface Launcher {
  readonly file: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}
