import { expect, test } from 'vitest'
import { Secret } from '../../crds/core.ts'
import type { ApiAnswer, ApiRequest, KubernetesClient } from './client.ts'
import { listKind } from './lists.ts'

const secret = (namespace: string, name: string) => ({
  metadata: { namespace, name, uid: name, resourceVersion: '1', creationTimestamp: '' },
})
const page = (names: readonly string[], more = ''): ApiAnswer => ({
  status: 200,
  body: { metadata: { resourceVersion: '7', continue: more }, items: names.map((name) => secret('n', name)) },
})
const expired: ApiAnswer = { status: 410, body: { kind: 'Status', code: 410, reason: 'Expired' } }

function answering(answers: ApiAnswer[]) {
  const asked: ApiRequest['query'][] = []
  const request = async ({ query }: ApiRequest): Promise<ApiAnswer> => {
    asked.push(query)
    return answers.shift() ?? expired
  }
  return { client: { request } as unknown as KubernetesClient, asked }
}

test('pages are read to the last', async () => {
  const { client, asked } = answering([page(['a'], 'next'), page(['b'])])
  const { items, resourceVersion } = await listKind(client, Secret, { namespace: 'n' })
  expect([items.map(({ metadata }) => metadata.name), resourceVersion]).toEqual([['a', 'b'], '7'])
  expect(asked).toMatchObject([
    { limit: '500', continue: undefined },
    { limit: '500', continue: 'next' },
  ])
})

test('when the revision is compacted between pages, all is read anew in one piece', async () => {
  const { client, asked } = answering([page(['a'], 'next'), expired, page(['c', 'd'])])
  expect((await listKind(client, Secret, {})).items.map(({ metadata }) => metadata.name)).toEqual(['c', 'd'])
  expect(asked[2]).toMatchObject({ limit: undefined, continue: undefined })
})

test('namespaces are in order whatever an API server thinks of "-" and "/"', async () => {
  const items = [secret('a-b', 'x'), secret('a', 'z'), secret('a', 'y')]
  const { client } = answering([{ status: 200, body: { metadata: { resourceVersion: '7' }, items } }])
  const listed = await listKind(client, Secret, {})
  expect(listed.items.map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`)).toEqual(['a/y', 'a/z', 'a-b/x'])
})
