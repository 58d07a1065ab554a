import { expect, test } from 'vitest'
import { annotations } from '../../crds/names.ts'
import { tunnel } from '../../test/builders/resources.ts'
import { tunnelView } from './tunnel-view.ts'

const about = {
  organization: 'acme',
  namespace: 'prod',
  endpoint: undefined,
  presence: { sessions: 0, lastConnectedAt: undefined },
  readsSecrets: true,
}
const BY_REST = '2026-01-02T00:00:00.123Z'

test.each([
  { when: 'the tunnel never changed', annotation: undefined, status: undefined, at: '2026-01-01T00:00:00.000Z' },
  { when: 'the last change came from REST', annotation: BY_REST, status: BY_REST, at: BY_REST },
  { when: 'the status lacks a change from REST', annotation: BY_REST, status: '2026-01-01T12:00:00.000Z', at: BY_REST },
  {
    when: 'the last change came from kubectl',
    annotation: BY_REST,
    status: '2026-01-03T00:00:00.456Z',
    at: '2026-01-03T00:00:00.456Z',
  },
  { when: 'only kubectl changed it', annotation: undefined, status: BY_REST, at: BY_REST },
  { when: 'the annotation is not a time', annotation: 'yesterday', status: undefined, at: '2026-01-01T00:00:00.000Z' },
])('updatedAt is $at when $when', ({ annotation, status, at }) => {
  const shown = tunnelView(
    tunnel({
      metadata: { annotations: annotation === undefined ? {} : { [annotations.updatedAt]: annotation } },
      status: status === undefined ? {} : { updatedAt: status },
    }),
    about,
  )
  expect(shown.updatedAt).toBe(at)
})
