import type { ChannelMessages } from '../../channels/messages.ts'
import type { RsaHash } from '../public-key.ts'

/** RFC 4253, section 11.1. */
export const Reason = {
  notAllowed: 1,
  protocolError: 2,
  keyExchangeFailed: 3,
  serviceNotAvailable: 7,
  connectionLost: 10,
  byApplication: 11,
  tooManyConnections: 12,
  noMoreAuthMethods: 14,
} as const
export type Reason = (typeof Reason)[keyof typeof Reason]

/** A login attempt (RFC 4252, sections 5 to 8). Without `signature`: only the question whether the key would do. */
export type AuthRequest =
  | { readonly method: 'password'; readonly user: string; readonly password: string }
  | {
      readonly method: 'publickey'
      readonly user: string
      readonly blob: Buffer
      readonly hash: RsaHash
      readonly signature?: { readonly bytes: Buffer; readonly of: Buffer }
    }
  | { readonly method: 'none'; readonly user: string }
  | { readonly method: 'other'; readonly user: string }

/** What a client asks beside channels. */
export type GlobalRequest =
  | { readonly name: 'tcpip-forward' | 'cancel-tcpip-forward'; readonly bindHost: string; readonly bindPort: number }
  | { readonly name: 'streamlocal-forward@openssh.com'; readonly path: string }
  | { readonly name: 'other' }

/** What comes from a client. Nothing but `keysExchanged`, `auth` and `broken` before `accept`. */
export interface WireEvents {
  readonly channels: ChannelMessages
  /** `first`: the connection is encrypted from here on. */
  keysExchanged(first: boolean): void
  auth(request: AuthRequest): void
  global(request: GlobalRequest, wantReply: boolean): void
  /** An answer to a `ping`. */
  pong(): void
  disconnected(): void
  /** It does not speak the protocol; the connection is of no use any more. */
  broken(): void
}
