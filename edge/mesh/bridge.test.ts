import { expect, test } from 'vitest'
import type { Channel, ChannelEvents } from '../channels/channel.ts'
import type { Session } from '../session.ts'
import { Bridge } from './bridge.ts'

/** A channel that notes what it is told to; it takes what it is given while `takes` is set. */
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

test('bytes go both ways, and whoever is full holds the other', () => {
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

test('what the target has sent before it went gets there first', () => {
  const { said, far, target, peer } = setUp()
  target.opened()
  far.state.takes = false
  target.data(bytes('last words'))
  target.ended()
  target.closed({ lost: true })
  expect(said.slice(1)).toEqual(['far last words', 'near pause'])
  peer.drained()
  expect(said.slice(3)).toEqual(['far destroy'])
})

test('an end is passed on, and a close of both sides is no loss', () => {
  const { said, target, peer } = setUp()
  target.opened()
  target.ended()
  peer.ended()
  target.closed({ lost: false })
  peer.closed({ lost: false })
  expect(said).toEqual(['opened', 'far end', 'near end', 'near destroy'])
})

test('a link that breaks before there was an answer closes what was being opened', () => {
  const { said, peer } = setUp()
  peer.refused('session_lost')
  expect(said).toEqual(['near destroy'])
})

test('a refusal is passed on', () => {
  const { said, target } = setUp()
  target.refused('connect_failed')
  expect(said).toEqual(['refused connect_failed'])
})
