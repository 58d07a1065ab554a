import { test } from 'vitest'
import { liveThrough } from '../../support/operator/dedicated-life.ts'

test('a dedicated database of MongoDB runs, changes, survives kill -9 and is deleted with its server', () =>
  liveThrough('mongodb-7.0.2'))
