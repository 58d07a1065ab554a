import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkConfigPatch, checkNewConfig, CreateTunnelBody, PatchTunnelBody, requireAllowedTarget } from './tunnel-body.ts'
import { fieldErrorsOf } from '../../shared/field-errors.ts'
import { fieldsOf, serveRoutes, ok, on } from '../../test/support/api/http-app.ts'
import type { AnyRoute } from '../http/route.ts'

/** Names on which every regular expression engine must agree, with and without Unicode support. */
const NAMES = { right: ['a', 'p', 'Cc', 'web {1}', 'é', '海', '\u{a0}'], wrong: ['', '\0', 'a\n', '\u{7f}', '\u{85}'] }

const { components } = JSON.parse(await readFile(join(import.meta.dirname, '../../docs/openapi.json'), 'utf8')) as {
  components: { schemas: Record<string, { properties: { name: { pattern: string } } }> }
}

test.each(['CreateTunnel', 'PatchTunnel'])('the published pattern of a name in %s is equivalent in every client', (id) => {
  const pattern = components.schemas[id]?.properties.name.pattern ?? expect.fail('the schema has no pattern')
  for (const flags of ['', 'u', 'v']) {
    const published = new RegExp(pattern, flags)
    for (const name of NAMES.right) expect([name, flags, published.test(name)]).toEqual([name, flags, true])
    for (const name of NAMES.wrong) expect([name, flags, published.test(name)]).toEqual([name, flags, false])
  }
})

test('a name has at most 63 characters of any Unicode plane', () => {
  const named = (name: string) => PatchTunnelBody.safeParse({ name }).success
  expect([named('🚢'.repeat(63)), named('🚢'.repeat(64)), named('x'.repeat(64))]).toEqual([true, false, false])
})

test.each([
  { regionId: undefined, message: 'is required' },
  { regionId: '1', message: 'must be a whole number: the regionId of a region in GET /v1/regions' },
  { regionId: 1.5, message: 'must be a whole number: the regionId of a region in GET /v1/regions' },
])('the error of the regionId $regionId says where the number is from', ({ regionId, message }) => {
  const { error } = CreateTunnelBody.safeParse({ name: 'web', regionId })
  expect(error && fieldErrorsOf(error)).toEqual([{ field: 'regionId', message }])
})

/** Required fields of a creation in addition to the config. */
const REST = ['name', 'regionId']
const header = (name: unknown, value = 'v') => ({ name, value, type: 'request' })

/** Returns the fields that an error names, with repetitions. */
async function wrong(is: Pick<AnyRoute, 'method' | 'body' | 'checkBody'>, body: object): Promise<readonly string[]> {
  const toy: AnyRoute = {
    path: '/v1/toys',
    on,
    id: 'toy',
    summary: '',
    replies: ok,
    ...is,
    handle: () => expect.fail('was taken'),
  }
  await using app = await serveRoutes([toy])
  return fieldsOf(await app.call(is.method.toUpperCase(), '/v1/toys', { token: 'alice', body }))?.toSorted() ?? []
}

describe('each invalid item of a list is named by its index, once, in addition to other errors', () => {
  test.each<{ config: object; fields: readonly string[] }>([
    {
      config: {
        liveHeaderModifications: ['a b', 'Transfer-Encoding', 'X-A', 'X-Forwarded-For', 'Connection', 7, 'x-forwarded- ']
          .map((name) => header(name))
          .concat(header('Host', 'a\r\nb')),
      },
      fields: [
        ...[0, 1, 3, 4, 5, 6, 7].map((index) => `config.liveHeaderModifications[${index}].name`),
        'config.liveHeaderModifications[7].value',
      ],
    },
    {
      config: { liveHeaderModifications: [null, 'Host', header('Host')] },
      fields: ['[0]', '[1]', '[2].name'].map((at) => `config.liveHeaderModifications${at}`),
    },
    {
      config: {
        sshIPWhitelist: ['::1', '192.0.2.0/33', 'here', '1.2.3.4/0'],
        ingressIPWhitelist: ['::1', 5, '::ffff:192.0.2.1'],
        httpsOnly: 1,
      },
      fields: [
        ...['config.httpsOnly', 'config.ingressIPWhitelist[1]', 'config.ingressIPWhitelist[2]'],
        ...['config.sshIPWhitelist[1]', 'config.sshIPWhitelist[2]', 'config.sshIPWhitelist[3]'],
      ],
    },
    {
      config: {
        ...{ ingressIPWhitelist: Array.from({ length: 101 }, () => 'here'), sshIPWhitelist: ['::/129'] },
        ...{ liveHeaderModifications: [header('Host')], authorizedKeys: ['ssh-rsa'] },
      },
      fields: [
        ...['config.authorizedKeys[0]', 'config.ingressIPWhitelist'],
        ...['config.liveHeaderModifications[0].name', 'config.sshIPWhitelist[0]'],
      ],
    },
    { config: { ingressIPWhitelist: '::1', target: 5 }, fields: ['config.ingressIPWhitelist', 'config.target'] },
    // Each item is too long for its schema and matches neither its pattern nor a rule.
    {
      config: { sshIPWhitelist: ['1'.repeat(65)], target: 'x'.repeat(301) },
      fields: ['config.sshIPWhitelist[0]', 'config.target'],
    },
    {
      config: { target: 'db.internal:5432', forwardToOtherHosts: false, authMode: 'none' },
      fields: ['config.authMode', 'config.target'],
    },
    // Only `true` allows other hosts.
    {
      config: { target: 'db.internal:5432', forwardToOtherHosts: 'yes' },
      fields: ['config.forwardToOtherHosts', 'config.target'],
    },
  ])('$fields', async ({ config, fields }) => {
    expect(await wrong({ method: 'post', body: CreateTunnelBody, checkBody: checkNewConfig }, { config })).toEqual([
      ...fields,
      ...REST,
    ])
    expect(await wrong({ method: 'patch', body: PatchTunnelBody, checkBody: checkConfigPatch }, { config })).toEqual(fields)
  })
})

test('a target is checked in addition to other errors, unless it has one itself', async () => {
  const post = { method: 'post', body: CreateTunnelBody, checkBody: checkNewConfig } as const
  const long = Array.from({ length: 101 }, () => '::1')
  const fields = ['config.sshIPWhitelist', 'config.target', ...REST]
  for (const target of ['db.internal:5432', 'nowhere', 5])
    expect(await wrong(post, { config: { target, sshIPWhitelist: long } })).toEqual(fields)
})

test('a patch is checked together with the unchanged settings', () => {
  const refusal: unknown = expect.objectContaining({
    code: 'invalid_request',
    message: 'config.target must be on localhost, unless forwardToOtherHosts is true',
  })
  const elsewhere = { target: 'db.internal:5432' }
  expect(() => requireAllowedTarget({ forwardToOtherHosts: false }, elsewhere)).toThrow(refusal)
  expect(() => requireAllowedTarget({ ...elsewhere, forwardToOtherHosts: true }, { forwardToOtherHosts: null })).toThrow(refusal)
  expect(() => requireAllowedTarget({ forwardToOtherHosts: true }, elsewhere)).not.toThrow()
  expect(() =>
    requireAllowedTarget({ ...elsewhere, forwardToOtherHosts: true }, { forwardToOtherHosts: null, target: null }),
  ).not.toThrow()
})
