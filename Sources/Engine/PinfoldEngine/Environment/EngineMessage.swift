import CacheStore
import EventLoop
import PinfoldResolver

/// What an environment is told by other threads.
package enum EngineMessage: Sendable {
    /// A lookup's answer, for the connect operation of the token.
    case resolved(Token, ResolveResult)
    /// More addresses of the same name.
    case resolvedLater(Token, ResolvedAnswer)
    /// The disk tier's answer, for the exchange of the token.
    case loaded(Token, LoadResult)
    /// A part of a body on disk.
    case chunk(Token, ChunkResult)
    /// The disk has followed what is being stored, for the exchange of the token.
    case storesDrained(Token)
    /// What a reviewer says of the server of a connection that has just been made.
    case reviewed(Token, ReviewAnswer)
    /// What came of a message's content, for the exchange or the filter of the token.
    case transformed(Token, TransformationOutcome)
    /// A place of a limit that this environment stood in line for.
    case permitGranted(SharedLimit)
    /// Another environment waits for a connection: an idle one makes way.
    case connectionWanted(IdleConnectionRequest)
    /// All environments have answered this one's question for an idle connection.
    case connectionAnswered(IdleConnectionRequest)
}
