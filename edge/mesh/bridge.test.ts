import { expect, test } from 'vitest'
import type { Channel, ChannelEvents } from '../channels/channel.ts'
import type { Session } from '../sessions.ts'
import { Bridge } from './bridge.ts'

/** Channel that records its calls; it accepts data while `takes` is set. */
function channel(said: string[], name: string) {
  const state = { takes: true }
  const made: Channel = {
    write(chunk) {
      said.push(`${name} ${chunk.toString()}`)
      return state.takes
    },
    end: () => void said.push(`${name} end`),
    destroy: () => void said.push(`${name} destroy`),
    pause: () => void said.push(`${name} pause`),
    resume: () => void said.push(`${name} resume`),
  }
  return { made, state }
}

function setUp() {
  const said: string[] = []
  const near = channel(said, 'near')
  const far = channel(said, 'far')
  const events: ChannelEvents[] = []
  const session: Session = {
    ...{ id: 'session', hostname: '0123456789abcdef', clientIp: '127.0.0.1', since: 0, channels: 0 },
    login: { authMethod: 'token', passwordId: 'x' },
    open(_origin, given) {
      events.push(given)
      return near.made
    },
    ...{ notify: () => undefined, close: () => undefined },
  }
  const bridge = new Bridge(
    { session, origin: { address: '203.0.113.1', port: 1 } },
    { opened: () => void said.push('opened'), refused: (why) => void said.push(`refused ${why}`) },
  )
  bridge.attach(far.made)
  return { said, near, far, bridge, target: bridge as ChannelEvents, peer: bridge.farEvents }
}

const bytes = (text: string) => Buffer.from(text)

test('bytes flow both ways, and a full side pauses the other', () => {
  const { said, near, far, target, peer } = setUp()
  target.opened()
  peer.data(bytes('ask'))
  near.state.takes = false
  peer.data(bytes('more'))
  target.drained()
  far.state.takes = false
  target.data(bytes('answer'))
  peer.drained()
  expect(said).toEqual(['opened', 'near ask', 'near more', 'far pause', 'far resume', 'far answer', 'near pause', 'near resume'])
})

test('data that the target sent before its end is delivered first', () => {
  const { said, far, target, peer } = setUp()
  target.opened()
  far.state.takes = false
  target.data(bytes('last words'))
  target.ended()
  target.closed({ lost: true })
  expect(said.slice(1)).toEqual(['far last words', 'near pause'])
  peer.drained()
  expect(said.slice(3)).toEqual(['far end', 'far destroy'])
})

test('a target that is lost before its end is closed without an end', () => {
  const { said, far, target, peer } = setUp()
  target.opened()
  far.state.takes = false
  target.data(bytes('half'))
  target.closed({ lost: true })
  peer.drained()
  expect(said.slice(3)).toEqual(['far destroy'])
})

test('an end is forwarded, and a close after both ends is no loss', () => {
  const { said, target, peer } = setUp()
  target.opened()
  target.ended()
  peer.ended()
  target.closed({ lost: false })
  peer.closed({ lost: false })
  expect(said).toEqual(['opened', 'far end', 'near end', 'near destroy'])
})

test('a link that breaks during an open closes the channel', () => {
  const { said, peer } = setUp()
  peer.refused('session_lost')
  expect(said).toEqual(['near destroy'])
})

test('a refusal is forwarded', () => {
  const { said, target } = setUp()
  target.refused('connect_failed')
  expect(said).toEqual(['refused connect_failed'])
})
