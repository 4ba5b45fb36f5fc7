/// What the engine does in one step, as scripts for `EVALSHA`: each for names of one slot.
/// They compare bytes and never read records, but for two places that no version moves: where an
/// index has its instance, and the position before a generation's record.
package enum SharedScript: String, Sendable, CaseIterable {
    /// Publishes a response, unless its key was removed since its request was sent, and ends the
    /// lease. The index lives for longer than the response; since each change of it is told to all
    /// (`SharedName.tracked`), it is not changed each time.
    ///
    /// - names: index, value, lease.
    /// - arguments: the instance; the index as it was read and as it is to be, both empty if it
    ///   stays; the value; its lifetime in milliseconds; the lease's record, empty for none.
    /// - replies: 1; 0 if the key was removed; 2 if the index has other names by now: it is to be
    ///   read again.
    case publish = """
        local index = redis.call('GET', KEYS[1])
        if not index or string.sub(index, 23, 38) ~= ARGV[1] then return 0 end
        if ARGV[2] ~= '' then
          if index ~= ARGV[2] then return 2 end
          redis.call('SET', KEYS[1], ARGV[3], 'KEEPTTL')
        end
        redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[5])
        if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[5]) then
          redis.call('PEXPIRE', KEYS[1], 2 * ARGV[5])
        end
        if ARGV[6] ~= '' and redis.call('GET', KEYS[3]) == ARGV[6] then
          redis.call('DEL', KEYS[3])
        end
        return 1
        """

    /// Ends a lease, if it still is this one.
    ///
    /// - names: lease.
    /// - arguments: its record.
    /// - replies: 1, or 0 if it is not.
    case release = """
        if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
        return redis.call('DEL', KEYS[1])
        """

    /// Makes a lease last longer, if it still is this one.
    ///
    /// - names: lease.
    /// - arguments: its record; milliseconds from now.
    /// - replies: 1, or 0 if it is not.
    case extend = """
        if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
        return redis.call('PEXPIRE', KEYS[1], ARGV[2])
        """

    /// Begins a record of generations, if there is none of this epoch: before a response is
    /// published in its scope.
    ///
    /// - names: the record.
    /// - arguments: the floor's value; milliseconds, at least as many as any response lives.
    /// - replies: 1 if it begins, otherwise 0.
    case begin = """
        local floor = redis.call('HGET', KEYS[1], 'floor')
        local begins = not floor or string.sub(floor, 1, 16) ~= string.sub(ARGV[1], 1, 16)
        if begins then
          redis.call('DEL', KEYS[1])
          redis.call('HSET', KEYS[1], 'floor', ARGV[1])
        end
        redis.call('PEXPIRE', KEYS[1], ARGV[2])
        return begins and 1 or 0
        """

    /// Raises a generation: notes a purge, unless a later one of the same pattern has been noted.
    ///
    /// - names: the record.
    /// - arguments: field and value of the mark; the value of a floor at the same position;
    ///   milliseconds, as for `begin`; `Generations.maximumMarks`.
    /// - replies: 1; 0 if there was a later one; 2 if the record was full, and has begun anew.
    case raise = """
        local floor = redis.call('HGET', KEYS[1], 'floor')
        if not floor or string.sub(floor, 1, 16) ~= string.sub(ARGV[2], 1, 16) then
          redis.call('DEL', KEYS[1])
          redis.call('HSET', KEYS[1], 'floor', ARGV[3])
        end
        local result = 1
        local old = redis.call('HGET', KEYS[1], ARGV[1])
        if old and string.sub(old, 1, 48) >= string.sub(ARGV[2], 1, 48) then
          result = 0
        elseif not old and redis.call('HLEN', KEYS[1]) > tonumber(ARGV[5]) then
          redis.call('DEL', KEYS[1])
          redis.call('HSET', KEYS[1], 'floor', ARGV[3])
          result = 2
        else
          redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
        end
        redis.call('PEXPIRE', KEYS[1], ARGV[4])
        return result
        """

    /// The script's text.
    package var text: String { rawValue }
}
