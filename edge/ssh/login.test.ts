import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { freshHostname, routesInMemory } from '../../test/support/edge/ssh-edge.ts'
import type { RoutedPassword } from '../route.ts'
import { checkPassword, revocationOf } from './login.ts'

const NOW = Date.parse('2026-01-01T12:00:00Z')
const [MINE, THEIRS] = [freshHostname(), freshHostname()]
const source = '192.0.2.1'

const routed = (secret: string, about: Partial<RoutedPassword> = {}): RoutedPassword => ({
  ...{ id: `id-${secret}`, sha256: createHash('sha256').update(secret).digest('hex'), expiresAt: NOW + 1, ...about },
})
const ten = Array.from({ length: 10 }, (_, index) => routed(`mt_${index}`))

interface Tunnels {
  readonly mine?: readonly RoutedPassword[]
  readonly theirs?: readonly RoutedPassword[]
}

function routesOf({ mine, theirs }: Tunnels) {
  const routes = routesInMemory()
  if (mine) routes.set(MINE, {}, mine)
  if (theirs) routes.set(THEIRS, {}, theirs)
  return routes.port
}

/** Result of a login: the hostname that it opens, or the refusal and the tunnel whose journal records it. */
function outcomeOf(tunnels: Tunnels, user: string, password: string): readonly string[] {
  const decision = checkPassword(routesOf(tunnels), { user, password, source, now: NOW })
  const route = decision.route?.hostname ?? 'nobody'
  return 'login' in decision ? ['opens', route] : [decision.refusal, route]
}

describe('a login by password', () => {
  const secret = 'mt_secret'
  test.each<{ does: string; user: string; tunnels: Tunnels; password?: string; outcome: readonly string[] }>([
    { does: 'as its hostname opens the tunnel', user: MINE, tunnels: { mine: [routed(secret)] }, outcome: ['opens', MINE] },
    {
      does: 'with any user name opens the tunnel',
      user: 'root',
      tunnels: { mine: [routed(secret)], theirs: [] },
      outcome: ['opens', MINE],
    },
    {
      does: 'as its hostname opens the tunnel, also when another one has the same hash',
      user: MINE,
      tunnels: { mine: [routed(secret)], theirs: [routed(secret)] },
      outcome: ['opens', MINE],
    },
    {
      does: 'as the hostname of another tunnel is refused',
      user: MINE,
      tunnels: { mine: [routed('mt_x')], theirs: [routed(secret)] },
      outcome: ['password', MINE],
    },
    {
      does: 'without a live password is refused with the reason of explain',
      user: MINE,
      tunnels: { mine: [routed('mt_x', { expiresAt: NOW })], theirs: [routed(secret)] },
      outcome: ['no_credential', MINE],
    },
    {
      does: 'with any user name is unknown when two tunnels have its hash',
      user: 'root',
      tunnels: { mine: [routed(secret)], theirs: [routed(secret)] },
      outcome: ['unknown_host', 'nobody'],
    },
    {
      does: 'with any user name is unknown when two tunnels have its hash, one of them expired',
      user: 'root',
      tunnels: { mine: [routed(secret, { expiresAt: NOW })], theirs: [routed(secret)] },
      outcome: ['unknown_host', 'nobody'],
    },
    {
      does: 'that has expired is refused as expired',
      user: 'root',
      tunnels: { mine: [routed(secret, { expiresAt: NOW })] },
      outcome: ['expired', MINE],
    },
    {
      does: 'opens the tunnel when an expired password has the same hash',
      user: MINE,
      tunnels: { mine: [routed(secret, { expiresAt: NOW }), routed(secret)] },
      outcome: ['opens', MINE],
    },
    {
      does: 'that is the eleventh is refused',
      user: MINE,
      tunnels: { mine: [...ten, routed(secret)] },
      outcome: ['password', MINE],
    },
    {
      does: 'that is the eleventh opens the tunnel when an older one has expired',
      user: MINE,
      tunnels: { mine: [routed('mt_x', { expiresAt: NOW }), ...ten.slice(1), routed(secret)] },
      outcome: ['opens', MINE],
    },
    {
      does: 'that is not temporary is refused, whatever its hash',
      user: MINE,
      tunnels: { mine: [routed('hunter2')] },
      password: 'hunter2',
      outcome: ['password', MINE],
    },
  ])('$does', ({ user, tunnels, password = secret, outcome }) => {
    expect(outcomeOf(tunnels, user, password)).toEqual(outcome)
  })
})

test.each([
  { does: 'goes on while its password is live', passwords: ten, revocation: undefined },
  { does: 'ends with its password', passwords: [routed('mt_9', { expiresAt: NOW })], revocation: 'password_expired' },
  { does: 'ends when its password was deleted', passwords: ten.slice(0, 9), revocation: 'password_revoked' },
  { does: 'ends when its password exceeds the limit', passwords: [routed('mt_older'), ...ten], revocation: 'password_revoked' },
])('a session $does', ({ passwords, revocation }) => {
  const login = { authMethod: 'token', passwordId: 'id-mt_9' } as const
  expect(revocationOf(routesOf({ mine: passwords }).get(MINE), { source, login, now: NOW })).toBe(revocation)
})
