/** Target of the forward in the commands of the API. */
const DEFAULT = 'localhost:3000'

/** Returns a command of the API for another local port. Any text but a port leaves the command unchanged, because users paste the command into a shell. */
export function withLocalPort(command: string, port: string): string {
  const number = /^[1-9]\d{0,4}$/.test(port.trim()) ? Number(port) : 0
  return number >= 1 && number <= 65_535 ? command.replaceAll(DEFAULT, `localhost:${number}`) : command
}
