import Authentication
import CacheStore
import EventLoop
import PinfoldResolver

/// A message from another thread to an environment.
package enum EngineMessage: Sendable {
    /// A lookup's answer, for the connect operation of the token.
    case resolved(Token, ResolveResult)
    /// More addresses of the same name.
    case resolvedLater(Token, ResolvedAnswer)
    /// The result of a password check, for the exchange of the token.
    case passwordChecked(Token, CheckOutcome)
    /// The response of a ``LocalSite``, for the exchange of the token.
    case siteAnswered(Token, LocalResponse)
    /// The next piece of the response of a ``LocalSite``, for the exchange of the token.
    case siteSent(Token, LocalPiece)
    /// What came of a purge that the exchange of the token has asked for.
    case purgeEnded(Token, PurgeOrder, PurgeOutcome)
    /// A purge is in effect in the store.
    case purged(PurgeNotice)
    /// It is the turn of the exchange of the token, if its number is the ticket, within the rate of
    /// a rule; or it is to look whether it is.
    case turnCame(Token, ticket: UInt64, isReady: Bool)
    /// The disk tier's answer, for the exchange of the token.
    case loaded(Token, LoadResult)
    /// A part of a body on disk.
    case chunk(Token, ChunkResult)
    /// More of a body that is read while it arrives is there, for the exchange of the token.
    case progressed(Token)
    /// An exchange of another environment waits for the response that is being fetched here.
    case follow(RemoteFollower, hash: UInt64)
    /// It waits no longer.
    case unfollow(RemoteFollower, hash: UInt64)
    /// The response that the exchange of the token waits for begins to arrive.
    case arriving(Token, CachedResponse)
    /// There is nothing more to wait for, for the exchange of the token.
    case flightEnded(Token, Exchange.FlightEnd)
    /// The disk has caught up with what is being stored, for the exchange of the token.
    case storesDrained(Token)
    /// A reviewer's verdict on the server of a connection that has just been made.
    case reviewed(Token, ReviewAnswer)
    /// The result of checking or translating a message's content, for the exchange or filter of the
    /// token.
    case transformed(Token, TransformationOutcome)
    /// The form in which the exchange of the token sends a stored response; `nil` if it cannot be
    /// had.
    case formMade(Token, HeapBody?)
    /// A permit of a limit for which this environment was queued.
    case permitGranted(SharedLimit)
    /// Another environment waits for a connection: close an idle one.
    case connectionWanted(IdleConnectionRequest)
    /// All environments have answered this one's request for an idle connection.
    case connectionAnswered(IdleConnectionRequest)
}
