import type { Channel, ChannelEvents } from '../../../edge/channels/channel.ts'
import type { Session } from '../../../edge/session.ts'

/** Channel that records its events in order. */
export interface RecordedChannel {
  readonly channel: Channel
  readonly said: readonly string[]
  readonly received: () => Buffer
  readonly over: Promise<string>
}

const ORIGIN = { address: '203.0.113.9', port: 4321 }

/** Opens a channel, and ends its own side when the target has ended the other. */
export function openChannel(session: Session, on: Partial<ChannelEvents> = {}): RecordedChannel {
  const said: string[] = []
  const chunks: Buffer[] = []
  let finish: (how: string) => void = () => undefined
  const over = new Promise<string>((resolve) => {
    finish = resolve
  })
  const say = (text: string) => void said.push(text)
  const channel = session.open(ORIGIN, {
    opened() {
      say('opened')
      on.opened?.()
    },
    refused(why) {
      say(`refused ${why}`)
      finish(`refused ${why}`)
    },
    data(chunk) {
      if (on.data) on.data(chunk)
      else chunks.push(Buffer.from(chunk))
    },
    drained: () => on.drained?.(),
    ended() {
      say('ended')
      channel.end()
    },
    closed({ lost }) {
      const how = lost ? 'lost' : 'closed'
      say(how)
      finish(how)
    },
  })
  return { channel, said, received: () => Buffer.concat(chunks), over }
}
