import SharedCache

/// What somebody has to know who asks the engine on a connection of their own: where it is, and
/// what has been purged. There is one only while all purges of this gateway are in it.
final class EngineView: Sendable {
    /// Distinguishes it from earlier ones.
    let number: UInt64
    let place: ServerPlace
    /// Which run of the engine it is about.
    let run: [UInt8]
    let generation: SharedToken
    let clock: EngineClock
    let purges: PurgeTable

    init(
        _ number: UInt64, of engine: Engine, at place: ServerPlace,
        in generation: SharedToken, purges: PurgeTable
    ) {
        self.number = number
        self.place = place
        run = engine.run
        self.generation = generation
        clock = engine.clock
        self.purges = purges
    }
}
