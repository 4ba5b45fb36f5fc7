/// How the responses of an entry's hosts are checked and changed (`hosts[].response`).
package struct ResponseRules: Sendable, Equatable {
    /// How the heads that clients are sent are changed, whether from the server or from the cache.
    package var headers = HeaderRules()
    /// The statuses that are passed on; `nil` for all. Others become a 502. Interim responses, and
    /// the 304 that answers a condition, are not checked.
    package var statusCodes: [ClosedRange<UInt16>]?
    /// The media types that are passed on, in lower case, without parameters; `*` may be used as
    /// the subtype. `nil` for all. Others become a 502.
    package var contentTypes: [String]?
    /// The format that content must have; `nil` for any.
    package var validate: ValidatedFormat?
    /// The JSON Schema that content must satisfy.
    package var schema: SchemaFile?
    /// The translation of the content; `nil` if it is passed on unchanged.
    package var body: ResponseBodyRules?
    package var image: ImageRules?
    /// The maximum size in bytes of content that is processed, before (decoded) and after
    /// translation.
    package var maximumBytes = 8 << 20
    /// How larger content is handled.
    package var larger = LargerBodyMode.refuse
    /// How a response with `no-transform` (RFC 9111 §5.2.2.6) or Content-Range is handled if it
    /// would be changed.
    package var noTransform = NoTransformMode.pass
    /// Which form of a changed response the cache keeps.
    package var cacheForm = CachedForm.translated

    /// Creates rules that check and change nothing.
    package init() {}

    /// Whether the content may be changed.
    package var translates: Bool { body != nil || image?.changes ?? false }

    /// Whether the cache stores a form other than the one that clients are sent.
    package var storesOrigin: Bool { translates && cacheForm == .origin }
}

/// The format that a response's content must parse as before any of it is passed on or stored.
package enum ValidatedFormat: String, Sendable, Equatable, CaseIterable {
    case json
    case xml
    case plist
    case image
}

/// A JSON Schema and its file.
package struct SchemaFile: Sendable, Equatable {
    /// The absolute path.
    package var path: String
    /// The schema, read when the configuration was loaded.
    package var text: [UInt8]

    package init(path: String, text: [UInt8]) {
        self.path = path
        self.text = text
    }
}

/// The translation of responses' content.
package struct ResponseBodyRules: Sendable, Equatable {
    package var from: BodyFormat
    package var to: BodyFormat
    /// Whether dictionary members whose value is null are removed, at every depth.
    package var removesKeysWithNullValues = false
    /// Whether property lists are written in binary form; otherwise in XML.
    package var writesBinaryPropertyLists = false

    package init(from: BodyFormat, to: BodyFormat) {
        self.from = from
        self.to = to
    }
}

/// How content beyond the maximum size is handled.
package enum LargerBodyMode: String, Sendable, Equatable, CaseIterable {
    /// A 502.
    case refuse
    /// It is passed on as it arrives, unchecked and unchanged.
    case pass
}

/// Which form of a changed response is stored.
package enum CachedForm: String, Sendable, Equatable, CaseIterable {
    /// The form that clients are sent.
    case translated
    /// The form that the origin sent; it is translated for each client.
    case origin
}

/// How images are checked and changed.
package struct ImageRules: Sendable, Equatable {
    /// The types that are passed on, in lower case; `nil` for every recognized type. Types are
    /// recognized by the content, not by Content-Type.
    package var accept: [ImageType]?
    /// Which types are converted, and to what.
    package var convert: [ImageConversion] = []
    /// The maximum of width times height, checked before anything is decoded.
    package var maximumPixels = 16_777_216
    /// The maximum width and height in pixels, to which larger images are scaled down; `nil` if
    /// they are not scaled.
    package var scaleTo: ImageSize?

    package init() {}

    /// Whether some images are changed.
    package var changes: Bool { !convert.isEmpty || scaleTo != nil }
}

/// An image type that is recognized.
package enum ImageType: String, Sendable, Equatable, CaseIterable {
    case png = "image/png"
    case jpeg = "image/jpeg"
    case gif = "image/gif"
    case webp = "image/webp"
    case avif = "image/avif"
}

/// A type and the one it is converted to.
package struct ImageConversion: Sendable, Equatable {
    package var from: ImageType
    /// PNG or JPEG.
    package var to: ImageType

    package init(from: ImageType, to: ImageType) {
        self.from = from
        self.to = to
    }
}

/// A width and a height in pixels.
package struct ImageSize: Sendable, Equatable {
    package var width: Int
    package var height: Int

    package init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }
}
