import { MooringError } from '../shared/errors.ts'

/** What was asked for. `flag` is the setting that a taken port is blamed on, e.g. `--shared-port`. */
export interface Wanted {
  readonly address: string
  readonly port: number
  readonly flag: string
}

/** Why a port could not be had, as a sentence: MooringError `port_in_use`, `port_forbidden`, `address_unavailable`, or the error itself. */
export function bindError(cause: NodeJS.ErrnoException, { address, port, flag }: Wanted): Error {
  switch (cause.code) {
    case 'EADDRINUSE':
      return new MooringError('port_in_use', `port ${port} on ${address} is in use: choose another with ${flag}`, { cause })
    case 'EACCES':
      return new MooringError('port_forbidden', `port ${port} may not be used by this user: choose another with ${flag}`, {
        cause,
      })
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new MooringError('address_unavailable', `${address} is not an address of this machine`, { cause })
    default:
      return cause
  }
}
