import { expect, test } from 'vitest'
import { annotations } from '../../crds/names.ts'
import { createCa } from '../certificates/local-ca.ts'
import { localIssuer } from './certificate-issuer.ts'
import { hostnameMark, markedHostname } from './resources.ts'

const [ca, another] = await Promise.all([createCa(new Date()), createCa(new Date())])
const { mac } = localIssuer(() => ca)
const HOSTNAME = '0123456789abcdef'
const web = { namespace: 'acme--prod', name: 'web' }
const good = hostnameMark(mac, web, HOSTNAME)

test.each([
  { of: 'its own', mark: good, gives: HOSTNAME },
  { of: 'its own with another hostname', mark: good.replace(/^0/, '1') },
  { of: 'its own with a letter more', mark: `${good}A` },
  { of: 'its own without its last letter', mark: good.slice(0, -1) },
  { of: 'a tunnel of another name', mark: hostnameMark(mac, { ...web, name: 'web2' }, HOSTNAME) },
  { of: 'a tunnel of another namespace', mark: hostnameMark(mac, { ...web, namespace: 'acme--dev' }, HOSTNAME) },
  {
    of: 'a tunnel whose namespace and name read the same',
    mark: hostnameMark(mac, { namespace: 'acme--pro', name: 'dweb' }, HOSTNAME),
  },
  { of: 'another installation', mark: hostnameMark(localIssuer(() => another).mac, web, HOSTNAME) },
  { of: 'nobody', mark: HOSTNAME },
  { of: 'nobody, and empty', mark: '' },
  { of: 'its own, of what is no hostname', mark: hostnameMark(mac, web, 'www') },
])('a mark of $of gives $gives', ({ mark, gives }) => {
  expect(markedHostname(mac, { ...web, annotations: { [annotations.hostname]: mark } })).toBe(gives)
})

test('a tunnel without a mark has no marked hostname', () => {
  expect(markedHostname(mac, web)).toBeUndefined()
})

test('a mark is the same after a restart, and does not contain the key', () => {
  expect(hostnameMark(localIssuer(() => ca).mac, web, HOSTNAME)).toBe(good)
  expect(good).toMatch(/^[0-9a-f]{16}\.[\w-]{43}$/)
})
