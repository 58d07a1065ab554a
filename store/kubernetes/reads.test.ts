import { expect, test } from 'vitest'
import { Secret } from '../../crds/core.ts'
import type { ApiResponse, ApiRequest, KubernetesClient } from './client.ts'
import { listKind } from './reads.ts'

const secret = (namespace: string, name: string) => ({
  metadata: { namespace, name, uid: name, resourceVersion: '1', creationTimestamp: '' },
})
const page = (names: readonly string[], more = ''): ApiResponse => ({
  status: 200,
  body: { metadata: { resourceVersion: '7', continue: more }, items: names.map((name) => secret('n', name)) },
})
const expired: ApiResponse = { status: 410, body: { kind: 'Status', code: 410, reason: 'Expired' } }

function answering(answers: ApiResponse[]) {
  const asked: ApiRequest['query'][] = []
  const request = async ({ query }: ApiRequest): Promise<ApiResponse> => {
    asked.push(query)
    return answers.shift() ?? expired
  }
  return { client: { request } as unknown as KubernetesClient, asked }
}

test('listKind reads all pages', async () => {
  const { client, asked } = answering([page(['a'], 'next'), page(['b'])])
  const { items, resourceVersion } = await listKind(client, Secret, { namespace: 'n' })
  expect([items.map(({ metadata }) => metadata.name), resourceVersion]).toEqual([['a', 'b'], '7'])
  expect(asked).toMatchObject([
    { limit: '500', continue: undefined },
    { limit: '500', continue: 'next' },
  ])
})

test('listKind reads everything again without pages when the revision is compacted between pages', async () => {
  const { client, asked } = answering([page(['a'], 'next'), expired, page(['c', 'd'])])
  expect((await listKind(client, Secret, {})).items.map(({ metadata }) => metadata.name)).toEqual(['c', 'd'])
  expect(asked[2]).toMatchObject({ limit: undefined, continue: undefined })
})

test('listKind orders by namespace, where an API server orders by path', async () => {
  const items = [secret('a-b', 'x'), secret('a', 'z'), secret('a', 'y')]
  const { client } = answering([{ status: 200, body: { metadata: { resourceVersion: '7' }, items } }])
  const listed = await listKind(client, Secret, {})
  expect(listed.items.map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`)).toEqual(['a/y', 'a/z', 'a-b/x'])
})
