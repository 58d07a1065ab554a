import { type TerminalText, sentences } from './sentences.ts'
import { performance } from 'node:perf_hooks'
import { type ChannelEnd, type ChannelMessages, type ChannelRequest, type RemoteEnd, OpenFailure } from '../channels/channel.ts'
import type { Target } from './wire/messages.ts'
import type { Wire } from './wire/wire.ts'
import type { ChannelTable } from '../channels/channel-table.ts'

const CTRL_C = 3
const CTRL_D = 4
const WINDOW_BYTES = 64 * 1024
/** Maximum bytes of text that wait for a terminal. */
const MAX_TEXT_BYTES = 8 * 1024
/** Maximum characters of one notice. */
const MAX_NOTICE = 400
const STDERR = 1
const QUIT_SIGNALS = ['INT', 'TERM', 'HUP', 'QUIT', 'KILL']
/** Requests that start a channel, of which one is accepted (RFC 4254, section 6.5). */
const PROGRAMS = ['shell', 'exec', 'subsystem']
const PTY_BYTES = [CTRL_C, CTRL_D]

interface Deps {
  readonly wire: Wire
  readonly id: number
  readonly remote: RemoteEnd
  text(): TerminalText
  /** Frees the channel's number. */
  free(): void
}

/**
 * Session channel that stock clients open (RFC 4254, section 6). It runs no program, shows URL and target of the tunnel, and ends on
 * ctrl-C.
 */
export class Terminal implements ChannelEnd {
  readonly #deps: Deps
  #room: number
  #left = WINDOW_BYTES
  #hasPty = false
  #started = false
  readonly #notices = new NoticeLimit()
  #closed = false

  constructor(deps: Deps) {
    this.#deps = deps
    this.#room = Math.min(deps.remote.window, deps.remote.maxPacket, MAX_TEXT_BYTES)
    deps.wire.channels.channelOpenConfirm(deps.remote.id, deps.id, WINDOW_BYTES, WINDOW_BYTES / 2)
  }

  /** Shows a line on stderr, so that a pipe does not swallow it. Drops it before the channel was started. */
  complain(line: string): void {
    const data = this.#take(line)
    if (data) this.#deps.wire.channels.channelExtData(this.#deps.remote.id, data, STDERR)
  }

  /** Shows a line on stderr, within the rate limit of `Session.notify`. */
  notify(line: string): void {
    const shown = line.slice(0, MAX_NOTICE).replace(/[^\x20-\x7e]/g, '?')
    if (this.#started && !this.#closed && this.#notices.take(shown, performance.now())) this.complain(shown)
  }

  #print(line: string): void {
    const data = this.#take(line)
    if (data) this.#deps.wire.channels.channelData(this.#deps.remote.id, data)
  }

  /** Encodes a line: a requested terminal is in raw mode at the client. Undefined when there is no room for it. */
  #take(line: string): Buffer | undefined {
    if (!this.#started || this.#closed) return undefined
    const data = Buffer.from(line + (this.#hasPty ? '\r\n' : '\n'))
    if (data.length > this.#room) return undefined
    this.#room -= data.length
    return data
  }

  request({ type, wantReply, detail }: ChannelRequest): void {
    const known = this.#knows(type)
    if (wantReply && known) this.#deps.wire.channels.channelSuccess(this.#deps.remote.id)
    else if (wantReply) this.#deps.wire.channels.channelFailure(this.#deps.remote.id)
    if (known && PROGRAMS.includes(type)) this.#show(type === 'subsystem' ? this.#withoutSubsystem(detail) : this.#deps.text())
    if (type === 'signal' && QUIT_SIGNALS.includes(detail)) this.#quit(0)
  }

  #knows(type: string): boolean {
    if (type === 'pty-req') this.#hasPty = true
    if (PROGRAMS.includes(type)) return !this.#started
    return ['pty-req', 'window-change', 'signal'].includes(type)
  }

  /**
   * Text for a subsystem request. It is accepted, because stock ssh drops the text of a channel whose request fails. The text goes to
   * stderr: programs such as sftp and scp read stdout as the subsystem's output.
   */
  #withoutSubsystem(name: string): TerminalText {
    return { lines: [], refusal: sentences.noSubsystem(name) }
  }

  #show({ lines, refusal }: TerminalText): void {
    this.#started = true
    for (const line of lines) this.#print(line)
    if (refusal === undefined) return
    this.complain(refusal)
    this.#quit(1)
  }

  received(data: Buffer): boolean {
    this.#left -= data.length
    if (this.#left < 0) return false
    if (this.#hasPty && PTY_BYTES.some((byte) => data.includes(byte))) this.#quit(0)
    else if (this.#left < WINDOW_BYTES / 2 && !this.#closed) {
      this.#deps.wire.channels.channelWindowAdjust(this.#deps.remote.id, WINDOW_BYTES - this.#left)
      this.#left = WINDOW_BYTES
    }
    return true
  }

  /** Ends the channel; stock ssh then ends the connection. */
  #quit(status: number): void {
    if (this.#closed) return
    this.#deps.wire.channels.exitStatus(this.#deps.remote.id, status)
    this.#deps.wire.channels.channelEOF(this.#deps.remote.id)
    this.#close()
  }

  #close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#deps.wire.channels.channelClose(this.#deps.remote.id)
  }

  adjusted(bytes: number): void {
    this.#room = Math.min(this.#room + bytes, MAX_TEXT_BYTES)
  }

  /** Ignores EOF: the standard input of a service is empty from the start. */
  eof(): void {
    this.#left = Math.max(0, this.#left)
  }

  close(): void {
    this.#close()
    this.#deps.free()
  }

  // The client opened this channel: there is nothing to confirm or refuse.

  confirmed(): void {
    this.#close()
  }

  refused(): void {
    this.#close()
  }

  lost(): void {
    this.#closed = true
  }
}

interface ClientChannelsDeps {
  text(): TerminalText
  /** Handles a channel to a host that the client names. Returns false when such channels are not allowed. */
  direct(remote: RemoteEnd, target: Target): boolean
}

/** Channels that a client opens itself: one session channel, which shows a terminal, and those of {@link ClientChannelsDeps.direct}. */
export class ClientChannels {
  readonly #deps: ClientChannelsDeps
  #terminal: Terminal | undefined

  constructor(deps: ClientChannelsDeps) {
    this.#deps = deps
  }

  get count(): number {
    return this.#terminal ? 1 : 0
  }

  open(table: ChannelTable<Wire>, ...[type, remote, target]: Parameters<ChannelMessages['opening']>): void {
    const { wire } = table
    if (target && this.#deps.direct(remote, target)) return
    if (type !== 'session') wire.channels.channelOpenFail(remote.id, OpenFailure.prohibited, sentences.onlyForwards)
    else if (this.#terminal) wire.channels.channelOpenFail(remote.id, OpenFailure.resourceShortage, sentences.secondSession)
    else {
      table.add((id) => {
        const free = () => {
          table.free(id)
          this.#terminal = undefined
        }
        this.#terminal = new Terminal({ wire, id, remote, text: () => this.#deps.text(), free })
        return this.#terminal
      })
    }
  }

  /** Shows a line on the terminal, if there is one, within the rate limit of `Session.notify`. */
  notify(line: string): void {
    this.#terminal?.notify(line)
  }

  /** Shows a line on stderr of the terminal, if there is one. */
  complain(line: string): void {
    this.#terminal?.complain(line)
  }
}

const MINUTE_MS = 60_000
/** Maximum lines per connection in a minute. */
const LINES_A_MINUTE = 10
/** Time in which an identical line is shown once. */
const REPEAT_MS = 10_000

/** Rate limit of the lines that a client's terminal shows while it serves: at most 10 a minute, and an identical line once in 10 s. */
export class NoticeLimit {
  /** Lines of the last minute, oldest first: at most {@link LINES_A_MINUTE}. */
  #shown: { readonly line: string; readonly at: number }[] = []

  /** Whether the line may be shown now; counts it if so. `now`: milliseconds of a monotonic clock. */
  take(line: string, now: number): boolean {
    this.#shown = this.#shown.filter(({ at }) => now - at < MINUTE_MS)
    if (this.#shown.length >= LINES_A_MINUTE) return false
    if (this.#shown.some((shown) => shown.line === line && now - shown.at < REPEAT_MS)) return false
    this.#shown.push({ line, at: now })
    return true
  }
}
