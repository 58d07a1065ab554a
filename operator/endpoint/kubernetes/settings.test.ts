import { expect, test } from 'vitest'
import { EdgePods } from './settings.ts'

test('only the image is required', () => {
  expect(EdgePods.parse('{"image":"mooring:1"}')).toMatchObject({
    ...{ image: 'mooring:1', pullPolicy: 'IfNotPresent', heapMiB: 512, networkPolicy: true },
    service: { type: 'ClusterIP', externalTrafficPolicy: 'Local' },
  })
})

test.each([
  { does: 'no JSON', text: 'image=mooring', says: /a JSON object as the chart makes it/ },
  { does: 'no image', text: '{}', says: /image/ },
  {
    does: 'an unknown name further down',
    text: '{"image":"x","service":{"typ":"NodePort"}}',
    says: /edges \(service /,
  },
  { does: 'another type of Service', text: '{"image":"x","service":{"type":"Ingress"}}', says: /service type/ },
])('$does is rejected with its path', ({ text, says }) => {
  expect(EdgePods.safeParse(text).error?.issues[0]?.message).toMatch(says)
})
