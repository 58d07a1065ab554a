/** Bounds of the links between edges. Times in milliseconds, sizes in bytes. */
export interface MeshLimits {
  /** Channels of one link, both ways together. */
  readonly channels: number
  /** Received on one link and not read; beyond it the channel that holds most is closed. */
  readonly unreadBytes: number
  /** What the windows of all links may grow by, for peers that are far away. */
  readonly windowGrowthBytes: number
  /** Sessions that one peer may have. */
  readonly sessions: number
  /** Links and connections that may become one. */
  readonly links: number
  /** For a connection to be made, and to say who it is. */
  readonly helloMs: number
  readonly pingMs: number
  /** A peer that says nothing for so long has gone. */
  readonly silentMs: number
  /** How often that is looked at. */
  readonly tickMs: number
  /** How long the peer that should dial is waited for. */
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
