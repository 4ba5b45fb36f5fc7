/// Gives content on: to the next stage, or out of the chain.
package typealias BodyOutlet = (
    _ content: UnsafeRawBufferPointer, _ owner: AnyObject
) throws(ExchangeFault) -> Void

/// A step through which the content of one message passes, in one direction: it gives content on as
/// it is or changed, at once or later, or refuses it with a fault. It serves one message and is
/// never used again.
///
/// A refusal becomes the reply to the request as long as the client has been sent nothing of a
/// response; after that the response is cut off.
package protocol BodyStage: AnyObject {
    /// What it gives out may be longer or shorter than what it takes: the message is then sent
    /// without a Content-Length. Else it is as long, byte for byte.
    var changesLength: Bool { get }
    /// The head of a response waits until the stage has let go of content, or has finished, so that
    /// a refusal can still become a reply. A request's head never waits: its content may be
    /// refused for as long as there is no response.
    var holdsHead: Bool { get }

    /// Takes the next part of the content, which is never empty.
    ///
    /// The bytes are valid during the call; who keeps them for later copies them. Given to `next`
    /// in the call, with their owner, they may be passed on without a copy. Other bytes are given
    /// with the object that keeps them alive, and unchanged, until they are written.
    func push(
        _ content: UnsafeRawBufferPointer, owner: AnyObject, to next: BodyOutlet
    ) throws(ExchangeFault)

    /// The content has ended: gives out what has been kept. Nothing follows.
    func finish(to next: BodyOutlet) throws(ExchangeFault)
}
