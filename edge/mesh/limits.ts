/** Limits of the links between edges. Times in milliseconds, sizes in bytes. */
export interface MeshLimits {
  /** Channels of one link, in both directions together. */
  readonly channels: number
  /** Bytes received on one link and not read. Above it the channel that holds most is closed. */
  readonly unreadBytes: number
  /** Bytes that the windows of all links may grow by, for distant peers. */
  readonly windowGrowthBytes: number
  /** Sessions of one peer. */
  readonly sessions: number
  /** Links, and connections that may become one. */
  readonly links: number
  /** Time to connect and to receive the peer's hello. */
  readonly helloMs: number
  readonly pingMs: number
  /** Silence after which a peer counts as lost. */
  readonly silentMs: number
  /** Interval of the checks of these times. */
  readonly tickMs: number
  /** Time that the peer whose name sorts first has to dial. */
  readonly patienceMs: number
}

export const MESH_LIMITS: MeshLimits = {
  channels: 20_000,
  unreadBytes: 64 * 1024 * 1024,
  windowGrowthBytes: 128 * 1024 * 1024,
  sessions: 50_000,
  links: 512,
  helloMs: 5_000,
  pingMs: 1_000,
  silentMs: 4_000,
  tickMs: 250,
  patienceMs: 3_000,
}
