// Its tests build on each other:
// @module-tag whole-file
import { killAtRandom } from './random-kills.ts'

killAtRandom('mariadb-10.7.4')
