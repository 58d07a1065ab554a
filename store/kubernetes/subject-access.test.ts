import { describe, expect, test } from 'vitest'
import { createVirtualClock } from '../../test/support/clocks.ts'
import type { Question, BindingCaches } from '../access.ts'
import type { ApiResponse, ApiRequest, KubernetesClient } from './client.ts'
import { createSubjectAccess } from './subject-access.ts'

/** API server that gives the answers in turn, and repeats the last one. */
function accessWith(answers: ApiResponse[], limit = 10) {
  const asked: ApiRequest[] = []
  const request = async (wanted: ApiRequest): Promise<ApiResponse> => {
    asked.push(wanted)
    return (answers.length > 1 ? answers.shift() : answers[0]) ?? { status: 500, body: undefined }
  }
  const clock = createVirtualClock()
  const client = { request } as unknown as KubernetesClient
  return { access: createSubjectAccess({ client, clock, limit, ...({} as BindingCaches) }), asked, clock }
}

const answer = (allowed: boolean): ApiResponse => ({ status: 201, body: { status: { allowed } } })
const alice = { user: 'local:alice', groups: ['local:b', 'local:a', 'local:a'] }
const question: Question = { verb: 'create', resource: 'sharedinstances', namespace: 'acme--prod' }

test('the review has the question in Kubernetes’ terms, and the caller unchanged', async () => {
  const { access, asked } = accessWith([answer(true)])
  await access.may(alice, question)
  await access.may(alice, { verb: 'patch', resource: 'sharedinstances/status' })
  expect(asked.map(({ body }) => body)).toMatchObject([
    {
      spec: {
        user: 'local:alice',
        groups: ['local:a', 'local:b'],
        resourceAttributes: { verb: 'create', group: 'mooring.dev', resource: 'sharedinstances', namespace: 'acme--prod' },
      },
    },
    { spec: { resourceAttributes: { verb: 'patch', resource: 'sharedinstances', subresource: 'status' } } },
  ])
})

describe('answers', () => {
  test('a positive answer is valid for five seconds from its request', async () => {
    const { access, asked, clock } = accessWith([answer(true), answer(false)])
    await access.may(alice, question)
    await clock.advance(4_999)
    expect(await access.may({ ...alice, groups: ['local:a', 'local:b'] }, question)).toBe(true)
    expect(asked).toHaveLength(1)
    await clock.advance(1)
    expect(await access.may(alice, question)).toBe(false)
  })

  test('a negative answer is not cached', async () => {
    const { access } = accessWith([answer(false), answer(true)])
    expect([await access.may(alice, question), await access.may(alice, question)]).toEqual([false, true])
  })

  test('a positive answer is cached per caller and question', async () => {
    const { access, asked } = accessWith([answer(true), answer(false)])
    await access.may(alice, question)
    expect(await access.may({ ...alice, user: 'local:bob' }, question)).toBe(false)
    expect(await access.may(alice, { ...question, namespace: 'acme--test' })).toBe(false)
    expect(asked).toHaveLength(3)
  })

  test('the oldest cached answer is dropped first', async () => {
    const { access, asked } = accessWith([answer(true)], 2)
    for (const namespace of ['a', 'b', 'c', 'c', 'b', 'a']) await access.may(alice, { ...question, namespace })
    expect(
      asked.map(({ body }) => (body as { spec: { resourceAttributes: Question } }).spec.resourceAttributes.namespace),
    ).toEqual([...['a', 'b', 'c', 'a']])
  })

  test('a missing answer is an error, never access', async () => {
    const { access } = accessWith([{ status: 500, body: undefined }])
    await expect(access.may(alice, question)).rejects.toMatchObject({ code: 'unavailable' })
  })
})
