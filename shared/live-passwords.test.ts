import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { tunnel, type PasswordTraits, tunnelPassword } from '../test/builders/resources.ts'
import { isPasswordOf, LIVE_PASSWORDS_MAX, livePasswords, passwordsBefore, passwordsOf } from './live-passwords.ts'
import { endOfPassword } from '../crds/tunnel-password.ts'

const web = tunnel({ metadata: { creationTimestamp: '2026-01-01T12:00:00Z' } })
const owner = (uid: string, of: object = {}) => ({
  ownerReferences: [{ apiVersion: 'mooring.dev/v1alpha1', kind: 'Tunnel', name: 'web', uid, ...of }],
})
const [EARLIER, LATER] = ['2026-01-01T11:59:59Z', '2026-01-01T12:00:01Z']

describe('isPasswordOf', () => {
  test.each<PasswordTraits & { does: string; is: boolean }>([
    { does: 'accepts a password that the tunnel owns', metadata: owner('uid-of-web'), is: true },
    {
      does: 'accepts a password that the tunnel owns and that is older than the tunnel',
      metadata: { ...owner('uid-of-web'), creationTimestamp: EARLIER },
      is: true,
    },
    {
      does: 'rejects a password of an earlier tunnel of the same name',
      metadata: { ...owner('earlier'), creationTimestamp: LATER },
      is: false,
    },
    { does: 'accepts a password without owner that names the tunnel', metadata: { creationTimestamp: LATER }, is: true },
    {
      does: 'accepts a password without owner that was created before the tunnel',
      metadata: { creationTimestamp: EARLIER },
      is: true,
    },
    {
      does: 'accepts a password that names the tunnel and has an owner of another kind',
      metadata: owner('x', { apiVersion: 'v1', kind: 'ConfigMap' }),
      is: true,
    },
    {
      does: 'rejects a password that names another tunnel',
      metadata: owner('uid-of-web'),
      spec: { tunnelRef: { name: 'shop' } },
      is: false,
    },
    { does: 'rejects a password of another namespace', metadata: { ...owner('uid-of-web'), namespace: 'eve--prod' }, is: false },
  ])('$does', ({ metadata = {}, spec = {}, is }) => {
    expect(isPasswordOf(tunnelPassword({ metadata, spec }), web)).toBe(is)
  })
})

const at = (second: number) => `2026-01-01T12:00:${String(second).padStart(2, '0')}Z`
const many = Array.from({ length: 12 }, (_, index) =>
  tunnelPassword({ metadata: { name: `p${String.fromCharCode(108 - index)}`, creationTimestamp: at(index < 6 ? 6 : 7) } }),
)
const named = (passwords: readonly { metadata: { name: string } }[]) => passwords.map(({ metadata }) => metadata.name)
const live = (passwords: typeof many, now: string) =>
  named(livePasswords(passwordsOf(web, passwords), endOfPassword, Date.parse(now)))

describe('livePasswords', () => {
  test('the ten oldest passwords are live in any input order; within a second, names decide', () => {
    const ten = ['pg', 'ph', 'pi', 'pj', 'pk', 'pl', 'pa', 'pb', 'pc', 'pd']
    expect(ten).toHaveLength(LIVE_PASSWORDS_MAX)
    expect(live(many, at(30))).toEqual(ten)
    expect(live(many.toReversed(), at(30))).toEqual(ten)
  })

  test('the next password becomes live when one expires or is being deleted', () => {
    const ended = many.map((password, index) =>
      index === 0 ? { ...password, spec: { ...password.spec, expiresAt: at(20) } } : password,
    )
    expect(live(ended, at(19))).not.toContain('pe')
    expect(live(ended, at(20))).toContain('pe')
    const deleted = many.map((password, index) =>
      index < 2 ? { ...password, metadata: { ...password.metadata, deletionTimestamp: at(20) } } : password,
    )
    expect(live(deleted, at(19))).toEqual(['pg', 'ph', 'pi', 'pj', 'pa', 'pb', 'pc', 'pd', 'pe', 'pf'])
  })

  test('passwords of an earlier tunnel of the same name do not count', () => {
    const before = many.map((password) => ({ ...password, metadata: { ...password.metadata, ...owner('earlier') } }))
    expect(live([...before, tunnelPassword({ metadata: { name: 'mine', creationTimestamp: LATER } })], at(30))).toEqual(['mine'])
  })

  test('passwordsBefore returns fewer than ten exactly for live passwords, in any input order', () => {
    const trait = fc.record({ second: fc.nat(5), ends: fc.nat(30), isOther: fc.boolean(), isGoing: fc.boolean() })
    fc.assert(
      fc.property(fc.array(trait, { maxLength: 40 }), fc.nat(30), (traits, second) => {
        const all = traits.map(({ second: made, ends, isOther, isGoing }, index) =>
          tunnelPassword({
            metadata: {
              ...{ name: `p${index}`, creationTimestamp: at(made) },
              ...(isOther && owner('earlier')),
              ...(isGoing && { deletionTimestamp: at(30) }),
            },
            spec: { expiresAt: at(ends) },
          }),
        )
        const now = Date.parse(at(second))
        const isIn = new Set(live(all, at(second)))
        for (const password of passwordsOf(web, all).filter((one) => endOfPassword(one) > now)) {
          const before = passwordsBefore(password, { owner: web, named: all, now })
          expect(before.length < LIVE_PASSWORDS_MAX).toBe(isIn.has(password.metadata.name))
        }
      }),
    )
  })
})
