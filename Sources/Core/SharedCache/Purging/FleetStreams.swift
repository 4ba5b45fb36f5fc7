/// What the two streams of a fleet have in common.
package enum FleetStreams {
    /// A script that begins the fleet's records together: a generation, and the streams that belong
    /// to it. If one of them is missing, what the others say is not known to be complete.
    ///
    /// - names: the generation, the stream of purges, that of removed keys.
    /// - arguments: the generation's record; seconds that all of them live; 1 if they begin anew
    ///   although they are there, otherwise 0; and the record that they are there with, empty if
    ///   that does not matter: several gateways may find at the same time that it is of no use.
    /// - replies: 1 if they have begun, 0 if they were there.
    package static let beginning: StaticString = """
        if ARGV[4] ~= '' and redis.call('GET', KEYS[1]) ~= ARGV[4] then
          return 0
        end
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

    /// A script that writes the generation's record as a later version does, with the same number.
    ///
    /// - names: the generation.
    /// - arguments: the record that is there, and the one that takes its place.
    package static let completing: StaticString = """
        if redis.call('GET', KEYS[1]) == ARGV[1] then
          redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
        end
        return 1
        """
}
