/// When a transfer last came nearer to its end, for those who wait for that. All times are the
/// loop's milliseconds.
struct TransferAdvance: Sendable {
    /// When it began, its response began, or content moved whose length is known.
    var advancedAt: Int64 = 0
    /// When content moved whose length is not known: the server took it, or, of the response, it
    /// came after its reader had taken some of what had come before.
    var streamedAt: Int64 = 0

    /// When it last came nearer to its end.
    ///
    /// - Parameter longest: For how long content of unknown length counts, in milliseconds since
    ///   what surely was an advance: it may have no end.
    func latest(streamingAtMost longest: Int64) -> Int64 {
        max(advancedAt, min(streamedAt, advancedAt + longest))
    }
}
