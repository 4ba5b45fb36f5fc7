import ImageCodecs

extension FuzzTarget {
    /// Whether AVIF is decoded; its library is loaded at run time.
    private static let decodesAVIF = ImageCodecs.load()

    /// What is decoded matches the header, and what is written is an image again.
    func checkImage(_ bytes: [UInt8]) throws(FuzzFinding) -> Bool {
        guard Self.decodesAVIF else { throw FuzzFinding("there is no library for AVIF") }
        let maximumPixels = 1 << 14
        let header: ImageHeader
        do throws(ImageFailure) {
            header = try ImageCodecs.inspect(bytes)
        } catch { return false }
        guard header.width > 0, header.height > 0 else { throw FuzzFinding("an image of nothing") }
        var plan = ImagePlan()
        plan.maximumPixels = maximumPixels
        plan.maximumFrames = 10
        plan.conversions = [.gif: .png, .webp: .png, .avif: .jpeg, .jpeg: .png, .png: .jpeg]
        plan.scale = (width: 20, height: 20)
        let written: WrittenImage?
        do throws(ImageFailure) { written = try plan.apply(to: bytes) } catch { return false }
        guard header.width * header.height <= maximumPixels else {
            throw FuzzFinding("\(header.width) times \(header.height) pixels were let through")
        }
        guard let written else { throw FuzzFinding("an image that was not converted") }
        let again: ImageHeader
        do throws(ImageFailure) { again = try ImageCodecs.inspect(written.bytes) } catch {
            throw FuzzFinding("what was written is no image: \(error.detail)")
        }
        guard again.kind == written.kind, again.width <= 20, again.height <= 20 else {
            throw FuzzFinding("\(again) was written")
        }
        return true
    }
}
