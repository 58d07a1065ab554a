/** Command that runs another command confined: `file` with `args`, followed by that command. */
export interface Launcher {
  readonly file: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
}
