import { expect, test } from 'vitest'
import { specChanges } from './spec-changes.ts'

const config = { httpsOnly: false, authorizedKeys: ['a'], target: 'localhost:1' }

test.each([
  { does: 'says nothing of what stayed', before: { config }, after: { config: { ...config } }, changes: [] },
  {
    does: 'names each field that changed, lists as a whole',
    before: { regionId: 1, config },
    after: { regionId: 1, config: { ...config, httpsOnly: true, authorizedKeys: ['a', 'b'] } },
    changes: [
      { path: 'spec.config.httpsOnly', from: false, to: true },
      { path: 'spec.config.authorizedKeys', from: ['a'], to: ['a', 'b'] },
    ],
  },
  {
    does: 'has null for a field that came or went',
    before: { config: { target: 'a:1' }, old: 1 },
    after: { config: {}, expiresAt: 'x' },
    changes: [
      { path: 'spec.config.target', from: 'a:1', to: null },
      { path: 'spec.old', from: 1, to: null },
      { path: 'spec.expiresAt', from: null, to: 'x' },
    ],
  },
  {
    does: 'is one change for a spec that comes',
    before: undefined,
    after: { a: 1 },
    changes: [{ path: 'spec', from: null, to: { a: 1 } }],
  },
  {
    does: 'is one change for a spec that goes',
    before: { a: 1 },
    after: undefined,
    changes: [{ path: 'spec', from: { a: 1 }, to: null }],
  },
  {
    does: 'leaves secrets and their hashes out, at any depth',
    before: undefined,
    after: { sha256: 'x', hooks: [{ secret: 'y', url: 'u' }], a: { password: 'z' } },
    changes: [{ path: 'spec', from: null, to: { hooks: [{ url: 'u' }], a: {} } }],
  },
  { does: 'says nothing of a changed secret', before: { sha256: 'x' }, after: { sha256: 'y' }, changes: [] },
])('$does', ({ before, after, changes }) => {
  expect(specChanges(before, after)).toEqual(changes)
})
