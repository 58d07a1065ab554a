import fc from 'fast-check'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { serveRoutes } from '../../test/support/api/http-app.ts'
import { type AnyRoute, literalFirst } from './route.ts'

const toy = (path: string): AnyRoute => ({
  ...{ method: 'get', path, on: ['shared'], id: 'toy', summary: '', replies: {} },
  params: z.object(Object.fromEntries([...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, z.string()]))),
  handle: async () => ({ status: 200, data: { path } }),
})

test.each([
  ['/v1/things/by-name/secret', '/v1/things/by-name/{name}'],
  ['/v1/things/1/secret', '/v1/things/{id}/secret'],
  ['/v1/things/by-name', '/v1/things/{id}'],
])('%s is served by %s, whichever route is declared first', async (path, template) => {
  const templates = ['/v1/things/{id}/secret', '/v1/things/{id}', '/v1/things/by-name/{name}']
  for (const declared of [templates, templates.toReversed()]) {
    await using app = await serveRoutes(declared.map(toy))
    expect((await app.call('GET', path, { token: 'alice' })).body.data).toEqual({ path: template })
  }
})

test('the order does not depend on the one of the declarations', () => {
  const segment = fc.constantFrom('a', 'b', '{x}')
  const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => `/${segments.join('/')}`)
  fc.assert(
    fc.property(fc.uniqueArray(path, { maxLength: 8 }), (paths) => {
      const shapes = (ordered: readonly string[]) => ordered.map((each) => each.replaceAll(/[ab]/g, 'l'))
      expect(shapes(literalFirst(paths))).toEqual(shapes(literalFirst(paths.toReversed())))
    }),
  )
})
