/// What an exchange has of stages, if it has any.
final class ExchangeStages {
    var request: BodyChain?
    var response: BodyChain?
    /// The response's head, while a stage holds it.
    var head: HeldHead?

    /// A head that is ready to be sent.
    struct HeldHead: ~Copyable {
        let status: UInt16
        let draft: HeadDraft
        let framing: ContentFraming
    }
}
