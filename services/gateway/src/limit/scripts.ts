/** Counts an event in a window that begins with the first; answers the count and the milliseconds left. */
const HIT_FUNCTION = `
local function hit(key, window)
  local count = redis.call('INCR', key)
  local left = count > 1 and redis.call('PTTL', key) or -1
  if left < 0 then
    redis.call('PEXPIRE', key, window)
    left = tonumber(window)
  end
  return count, left
end`;

/** KEYS: counter. ARGV: window in ms. */
export const HIT_SCRIPT = `${HIT_FUNCTION}
return {hit(KEYS[1], ARGV[1])}`;

/** Numbers that {@link ADMIT_SCRIPT} answers for each request. */
export const ADMIT_ANSWERS = 4;

/**
 * Any number of requests at once. KEYS of each: request counter, epoch, principal counter. ARGV of each: window and maximum of the first, expected
 * epoch, window of the last. Answers of each: count and milliseconds left of the first, then of the last; the last two are -1 where the
 * request is denied or the epoch is another: a missing one is.
 */
export const ADMIT_SCRIPT = `${HIT_FUNCTION}
local answers = {}
for request = 0, #KEYS / 3 - 1 do
  local key, arg, answer = request * 3, request * 4, request * 4
  local count, left = hit(KEYS[key + 1], ARGV[arg + 1])
  local recalled, recalledLeft = -1, -1
  if count <= tonumber(ARGV[arg + 2]) and redis.call('GET', KEYS[key + 2]) == ARGV[arg + 3] then
    recalled, recalledLeft = hit(KEYS[key + 3], ARGV[arg + 4])
  end
  answers[answer + 1], answers[answer + 2], answers[answer + 3], answers[answer + 4] = count, left, recalled, recalledLeft
end
return answers`;

/** KEYS: counter. */
export const REFUND_SCRIPT = `
local count = tonumber(redis.call('GET', KEYS[1]) or '0')
return count > 0 and redis.call('DECR', KEYS[1]) or 0`;
