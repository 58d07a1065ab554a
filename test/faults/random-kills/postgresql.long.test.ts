// Its tests build on each other:
// @module-tag whole-file
import { killAtRandom } from './random-kills.ts'

killAtRandom('postgresql-15.4.0')
