/// The requirements that an image must meet, and what it is converted to.
package struct ImagePlan: Sendable, Equatable {
    /// The types that are passed on.
    package var accepted = Set(ImageKind.allCases)
    /// The replacement for a type: PNG or JPEG.
    package var conversions: [ImageKind: ImageKind] = [:]
    /// The maximum number of bytes of the image.
    package var maximumBytes = 64 << 20
    /// The maximum of width times height.
    package var maximumPixels = 1 << 24
    /// The maximum number of pictures of an animation.
    package var maximumFrames = 1000
    /// The maximum number of bytes of the result.
    package var maximumResultBytes = 64 << 20
    /// Width and height in pixels, 1...``largestSide``, to which larger images are scaled down.
    package var scale: (width: Int, height: Int)?

    /// The largest side, in pixels, that can be requested.
    package static let largestSide = 1 << 24

    package init() {}

    package static func == (one: ImagePlan, other: ImagePlan) -> Bool {
        one.accepted == other.accepted && one.conversions == other.conversions
            && one.maximumBytes == other.maximumBytes && one.maximumPixels == other.maximumPixels
            && one.maximumFrames == other.maximumFrames
            && one.maximumResultBytes == other.maximumResultBytes
            && one.scale?.width == other.scale?.width && one.scale?.height == other.scale?.height
    }
}

/// An image that was converted from another.
package struct WrittenImage: Sendable, Equatable {
    /// PNG or JPEG.
    package var kind: ImageKind
    package var bytes: [UInt8]

    package init(kind: ImageKind, bytes: [UInt8]) {
        self.kind = kind
        self.bytes = bytes
    }
}

extension ImagePlan {
    /// Checks an image against the plan: first its header, then by decoding all of it, though only
    /// the first frame of an animation. Returns `nil` if the image is fine as it is.
    package func apply(to bytes: [UInt8]) throws(ImageCodecError) -> WrittenImage? {
        guard bytes.count <= maximumBytes else { throw .tooManyBytes(limit: maximumBytes) }
        guard let kind = ImageKind(signatureOf: bytes) else { throw .notAnImage }
        guard conversions[kind] != nil || accepted.contains(kind) else { throw .notAccepted(kind) }
        let header = try ImageCodecs.inspect(bytes)
        try ImageCodecs.check(header.width, header.height, maximumPixels)
        guard header.frames <= maximumFrames else {
            throw .tooManyFrames(header.frames, limit: maximumFrames)
        }
        let decoded = try ImageCodecs.decode(bytes, header, maximumPixels: maximumPixels)
        let target = size(of: decoded.raster, decoded.orientation)
        guard conversions[kind] != nil || target != nil else { return nil }
        var raster = decoded.raster
        if let target { raster = try raster.scaled(to: target.width, target.height) }
        raster = try raster.oriented(decoded.orientation)
        return try write(raster, from: kind)
    }

    /// The size to which the pixels are scaled, before rotation, or `nil` if they are not.
    private func size(of raster: Raster, _ orientation: Int) -> (width: Int, height: Int)? {
        guard let scale else { return nil }
        return Raster.transposes(orientation)
            ? Raster.size(of: raster.width, raster.height, within: scale.height, scale.width)
            : Raster.size(of: raster.width, raster.height, within: scale.width, scale.height)
    }

    private func write(_ raster: Raster, from kind: ImageKind) throws(ImageCodecError)
        -> WrittenImage
    {
        if try writtenKind(of: raster, from: kind) == .jpeg {
            let bytes = try ImageCodecs.encodeJPEG(raster, maximumBytes: maximumResultBytes)
            return WrittenImage(kind: .jpeg, bytes: bytes)
        }
        let bytes = try ImageCodecs.encodePNG(raster, maximumBytes: maximumResultBytes)
        return WrittenImage(kind: .png, bytes: bytes)
    }

    /// The type chosen by the conversion. If only the size changes, PNG and JPEG keep their type;
    /// drawings (GIF) and images with transparency become PNG, other WebP and AVIF images JPEG, or
    /// the other of the two if only that is accepted.
    private func writtenKind(
        of raster: Raster, from kind: ImageKind
    ) throws(ImageCodecError) -> ImageKind {
        if let conversion = conversions[kind] { return conversion }
        if kind == .png || kind == .jpeg { return kind }
        let wanted: ImageKind = kind == .gif || raster.hasTransparency ? .png : .jpeg
        if accepted.contains(wanted) { return wanted }
        let other: ImageKind = wanted == .png ? .jpeg : .png
        guard accepted.contains(other) else { throw .notWritable(kind) }
        return other
    }
}
