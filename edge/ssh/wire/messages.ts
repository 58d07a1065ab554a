import type { ChannelMessages } from '../../channels/channel.ts'
import type { RsaHash } from '../public-key.ts'

/** Reason codes of a disconnect (RFC 4253, section 11.1). */
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

/** Login attempt (RFC 4252, sections 5 to 8). Without `signature`: only the question whether the key is acceptable. */
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

/** Global request of a client. */
export type GlobalRequest =
  | { readonly name: 'tcpip-forward' | 'cancel-tcpip-forward'; readonly bindHost: string; readonly bindPort: number }
  | { readonly name: 'streamlocal-forward@openssh.com'; readonly path: string }
  | { readonly name: 'other' }

/** Messages of a client. Only `keysExchanged`, `auth` and `broken` occur before `accept`. */
export interface WireEvents {
  readonly channels: ChannelMessages
  /** `first`: the connection is encrypted from here on. */
  keysExchanged(first: boolean): void
  auth(request: AuthRequest): void
  global(request: GlobalRequest, wantReply: boolean): void
  /** Answer to a `ping`. */
  pong(): void
  disconnected(): void
  /** The client violated the protocol; the connection must be closed. */
  broken(): void
}
