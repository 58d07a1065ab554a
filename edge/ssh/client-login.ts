import type { Route, Routes } from '../route.ts'
import type { Login } from '../sessions.ts'
import { type Revocation, revocationOf } from './login.ts'
import { type PublicAddress, type ReachedTunnel, terminalText, type TerminalText } from './sentences.ts'

/** Tunnel of a client that has logged in. */
export interface ClientTunnel extends ReachedTunnel {
  readonly login: Login
}

interface Deps {
  readonly routes: Pick<Routes, 'get'>
  address(): PublicAddress
}

/** Login of one connection, with its tunnel as the routes have it now. */
export class ClientLogin {
  readonly hostname: string
  readonly login: Login
  /** Whether the login is to a database. */
  readonly isDatabase: boolean
  /** Time of the login, in milliseconds of performance.now(). */
  readonly at: number
  readonly #deps: Deps

  constructor({ hostname, database }: Route, login: Login, { at, deps }: { readonly at: number; readonly deps: Deps }) {
    this.hostname = hostname
    this.login = login
    this.isDatabase = database !== undefined
    this.at = at
    this.#deps = deps
  }

  /** Undefined when the tunnel was deleted, or has expired. */
  get tunnel(): ClientTunnel | undefined {
    const route = this.#deps.routes.get(this.hostname)
    return route && { route, address: this.#deps.address(), login: this.login }
  }

  /** Returns the reason why a client at this address is not authorized any more; `now`: milliseconds since the epoch. */
  revocation(source: string, now: number): Revocation | undefined {
    return revocationOf(this.#deps.routes.get(this.hostname), { source, login: this.login, now })
  }

  /** Returns the text of the client's terminal. `forwarding`: the client has an accepted forward. */
  terminalText(forwarding: boolean): TerminalText {
    const { tunnel } = this
    // A deleted tunnel ends its connections with a sentence.
    return tunnel ? terminalText(tunnel, forwarding) : NO_TEXT
  }
}

/** Text of a terminal without a tunnel. */
export const NO_TEXT: TerminalText = { lines: [], refusal: undefined }
