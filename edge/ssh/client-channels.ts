import type { ChannelTable } from '../channels/channel-table.ts'
import { sentences } from './sentences.ts'
import { Terminal } from './terminal.ts'
import type { TerminalText } from './sentences.ts'
import { OpenFailure, type RemoteEnd } from '../channels/messages.ts'
import type { Wire } from './wire/wire.ts'

/** Channels that a client opens itself: one session channel, which shows a terminal, and no other. */
export class ClientChannels {
  readonly #text: () => TerminalText
  #terminal: Terminal | undefined

  constructor(text: () => TerminalText) {
    this.#text = text
  }

  get count(): number {
    return this.#terminal ? 1 : 0
  }

  open(table: ChannelTable<Wire>, type: string, remote: RemoteEnd): void {
    const { wire } = table
    if (type !== 'session') wire.channels.channelOpenFail(remote.id, OpenFailure.prohibited, sentences.onlyForwards)
    else if (this.#terminal) wire.channels.channelOpenFail(remote.id, OpenFailure.resourceShortage, sentences.secondSession)
    else {
      table.add((id) => {
        const free = () => {
          table.free(id)
          this.#terminal = undefined
        }
        this.#terminal = new Terminal({ wire, id, remote, text: this.#text, free })
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
