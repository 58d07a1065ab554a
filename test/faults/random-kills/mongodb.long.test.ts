// Its tests build on each other:
// @module-tag whole-file
import { killAtRandom } from './random-kills.ts'

killAtRandom('mongodb-7.0.2')
