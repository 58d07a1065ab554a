/** Codes for refusing a channel (RFC 4254, section 5.1). */
export const OpenFailure = { prohibited: 1, connectFailed: 2, unknownType: 3, resourceShortage: 4 } as const

/** Request about a channel (RFC 4254, section 5.4). */
export interface ChannelRequest {
  readonly type: string
  readonly wantReply: boolean
  /** Name of a signal, or a command. */
  readonly detail: string
}

/** The other side's end of a channel. */
export interface RemoteEnd {
  readonly id: number
  readonly window: number
  readonly maxPacket: number
}

/** Messages of the other side about channels, by their number on our side. */
export interface ChannelMessages {
  opening(type: string, remote: RemoteEnd): void
  confirmed(id: number, remote: RemoteEnd): void
  refused(id: number, reason: number): void
  window(id: number, bytes: number): void
  data(id: number, data: Buffer, extended: boolean): void
  ended(id: number): void
  closed(id: number): void
  request(id: number, request: ChannelRequest): void
}
