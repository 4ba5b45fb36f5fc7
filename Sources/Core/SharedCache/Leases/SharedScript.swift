/// What the engine does in one step, as scripts for `EVAL`: each for names of one slot. They
/// compare bytes and never read records.
package enum SharedScript: String, Sendable, CaseIterable {
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

    /// Begins the fleet's records together: a generation, and the streams that belong to it. If one
    /// of them is missing, what the others say is not known to be complete.
    ///
    /// - names: the generation, the stream of purges, that of removed keys.
    /// - arguments: the generation's record; seconds that all of them live; 1 if they begin anew in
    ///   any case, otherwise 0.
    /// - replies: 1 if they have begun, 0 if they were there.
    case begin = """
        if ARGV[3] == '0' and redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3]) == 3 then
          return 0
        end
        redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2])
        redis.call('DEL', KEYS[2], KEYS[3])
        for index = 2, 3 do
          redis.call('XADD', KEYS[index], '*', 'b', '')
          redis.call('EXPIRE', KEYS[index], ARGV[2])
        end
        return 1
        """

    /// The script's text.
    package var text: String { rawValue }
}
