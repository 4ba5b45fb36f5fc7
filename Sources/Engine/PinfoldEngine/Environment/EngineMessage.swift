import CacheStore
import EventLoop
import PinfoldResolver

/// A message from another thread to an environment.
package enum EngineMessage: Sendable {
    /// A lookup's answer, for the connect operation of the token.
    case resolved(Token, ResolveResult)
    /// More addresses of the same name.
    case resolvedLater(Token, ResolvedAnswer)
    /// The disk tier's answer, for the exchange of the token.
    case loaded(Token, LoadResult)
    /// A part of a body on disk.
    case chunk(Token, ChunkResult)
    /// The disk has caught up with what is being stored, for the exchange of the token.
    case storesDrained(Token)
    /// A reviewer's verdict on the server of a connection that has just been made.
    case reviewed(Token, ReviewAnswer)
    /// The result of checking or translating a message's content, for the exchange or filter of the
    /// token.
    case transformed(Token, TransformationOutcome)
    /// A permit of a limit for which this environment was queued.
    case permitGranted(SharedLimit)
    /// Another environment waits for a connection: close an idle one.
    case connectionWanted(IdleConnectionRequest)
    /// All environments have answered this one's request for an idle connection.
    case connectionAnswered(IdleConnectionRequest)
}
