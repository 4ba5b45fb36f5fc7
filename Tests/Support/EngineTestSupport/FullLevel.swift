import CacheStore

/// A level of the cache whose queue stays full: no chunk of a body is read from it.
package final class FullLevel: ChunkSource {
    package init() {}

    package func readChunk(
        _ body: LevelBody, _ index: Int, completion: @escaping @Sendable (ChunkResult) -> Void
    ) -> Bool { false }

    package func release(body id: Int64) {}
}
