// All is there: the page around the frame may say what it knows.
tell({ type: "assay:hello" });
