import SharedCache

/// What somebody has to know who asks the engine on a connection of their own: where it is, and
/// what has been purged. There is one only while all purges of this gateway are in it.
final class EngineView: Sendable {
    let place: ServerPlace
    /// Which run of the engine it is about.
    let run: [UInt8]
    let generation: SharedToken
    let clock: EngineClock
    let purges: PurgeTable

    init(
        of engine: Engine, at place: ServerPlace, in generation: SharedToken,
        purges: PurgeTable
    ) {
        self.place = place
        run = engine.run
        self.generation = generation
        clock = engine.clock
        self.purges = purges
    }
}
