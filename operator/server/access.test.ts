import { expect, test } from 'vitest'
import { dedicatedServer } from '../../test/builders/dedicated.ts'
import { insidersOf, wayOf } from './access.ts'

const THIS_MACHINE = ['127.0.0.0/8', '::1/128']
const EDGE = ['127.83.72.1/32']
const serverWith = (access: object) =>
  dedicatedServer({ spec: { access: { organization: 'acme', isPrivate: false, ...access } } })

test.each([
  { name: 'an open server', access: {}, insiders: undefined },
  { name: 'a private server', access: { isPrivate: true }, insiders: THIS_MACHINE },
  { name: 'a server with an SSH tunnel', access: { sources: [], edges: 'main' }, insiders: EDGE },
  { name: 'a private server with an SSH tunnel', access: { isPrivate: true, edges: 'main' }, insiders: THIS_MACHINE },
  { name: 'one that listens on every address', access: { edges: 'main' }, listen: '0.0.0.0', insiders: EDGE },
  { name: 'one that listens on loopback of IPv6', access: { edges: 'main' }, listen: '::1', insiders: THIS_MACHINE },
  { name: 'one with a published port', access: { edges: 'main' }, listen: undefined, insiders: THIS_MACHINE },
  {
    name: 'one that listens on one address, from which the edge connects',
    ...{ access: { edges: 'main' }, listen: '192.0.2.7', insiders: [...THIS_MACHINE, '192.0.2.7'] },
  },
])('$name always admits $insiders', ({ access, insiders, ...at }) => {
  const way = insidersOf(serverWith(access), 'listen' in at ? at.listen : '127.0.0.1')
  expect([way.insiders, way.edgeSource]).toEqual([insiders, insiders === EDGE ? '127.83.72.1' : undefined])
})

test('a server that gets or loses its SSH tunnel, or becomes private, is supervised anew', () => {
  const ways = [{}, { edges: 'main' }, { isPrivate: true }, { isPrivate: true, edges: 'main' }].map((access) =>
    wayOf(serverWith(access)),
  )
  expect(new Set(ways).size).toBe(4)
  expect(wayOf(serverWith({ edges: 'other' }))).toBe(wayOf(serverWith({ edges: 'main' })))
})
