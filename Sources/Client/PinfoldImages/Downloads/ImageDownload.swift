public import HTTPTypes
import PinfoldClient

/// A downloaded image.
public struct ImageDownload: Sendable {
    /// The image, decoded if the downloader's serializer decodes it.
    public let image: DecodedImage
    /// The request.
    public let request: HTTPRequest
    /// The head of the response, or `nil` if the image came from the cache and no request was sent.
    public let response: HTTPResponse?
}

/// Identifies a caller's part in a download, in order to cancel it.
public struct ImageDownloadReceipt: Sendable, Hashable {
    /// The URL of the request.
    public let url: String
    let number: UInt64
}
