import { expect, test } from 'vitest'
import { createSuspicions } from './suspicions.ts'

test('prune forgets deleted instances', () => {
  const suspicions = createSuspicions()
  for (const uid of ['stays', 'went']) {
    suspicions.oversize.add(uid)
    suspicions.missing.add(uid)
  }
  suspicions.prune((uid) => uid === 'stays')
  expect([[...suspicions.oversize], [...suspicions.missing]]).toEqual([['stays'], ['stays']])
})
